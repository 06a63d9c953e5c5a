-- Answers of models whose providers told no tokens: they are in the costs by an estimate.
ALTER TABLE calls ADD COLUMN llm_uncounted_answers INTEGER NOT NULL DEFAULT 0;
