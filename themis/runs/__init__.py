"""What every run has, whatever its kind: prices and a budget, a way to be stopped, and a way to go on."""
