-- A text index in which every word begins with its workspace, so that a search reads the words of its workspace only.

-- The words of a call, in the order of the text and with single spaces: the index is written from them, and nothing
-- else has to split texts into words. `said` is a list of texts.
CREATE TABLE call_words (
  seq INTEGER PRIMARY KEY REFERENCES calls (seq),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  heads TEXT NOT NULL,
  carrier TEXT,
  summary TEXT,
  said TEXT
) STRICT;

-- A word is `<workspace>.<word>`. A long transcript has more than one column, because D1 limits the size of a text.
CREATE VIRTUAL TABLE call_index USING fts5 (
  about, said, said2, said3, said4,
  content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 2 tokenchars '.'"
);

-- Calls from before have their entries in call_search until the sweep has moved them here, the latest first: those
-- below this number may still be there. No row: all have been moved.
CREATE TABLE search_upgrade (below INTEGER NOT NULL) STRICT;
INSERT INTO search_upgrade (below) SELECT MAX(seq) + 1 FROM calls HAVING COUNT(*) > 0;
