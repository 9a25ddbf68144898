"""Quotations of authors whose works are in the public domain, one of each author."""

from __future__ import annotations

__all__ = ["QUOTATIONS"]

QUOTATIONS = (
    ("It is not down in any map; true places never are.", "Herman Melville"),
    ("I am no bird; and no net ensnares me.", "Charlotte Brontë"),
    ("Beware; for I am fearless, and therefore powerful.", "Mary Shelley"),
    ("The mass of men lead lives of quiet desperation.", "Henry David Thoreau"),
    ("A foolish consistency is the hobgoblin of little minds.", "Ralph Waldo Emerson"),
    ("I can resist everything except temptation.", "Oscar Wilde"),
    ("All the world's a stage, and all the men and women merely players.", "William Shakespeare"),
    ("A thing of beauty is a joy for ever.", "John Keats"),
    ("It was the best of times, it was the worst of times.", "Charles Dickens"),
    ("No man is an island, entire of itself.", "John Donne"),
    ("Better to reign in Hell, than serve in Heaven.", "John Milton"),
    ("It is a narrow mind which cannot look at a subject from various points of view.", "George Eliot"),
    ("If you look for perfection, you'll never be content.", "Leo Tolstoy"),
    ("Hope is the thing with feathers that perches in the soul.", "Emily Dickinson"),
    ("To err is human; to forgive, divine.", "Alexander Pope"),
)
