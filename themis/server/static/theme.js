// Runs before the page is drawn, so that a chosen theme does not flash.
"use strict";
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (error) {
  // Storage may be switched off; then the system's theme is used.
}
