-- How often a model rules on each criterion of a scenario.
ALTER TABLE scenarios ADD COLUMN judge_votes INTEGER NOT NULL DEFAULT 1;
