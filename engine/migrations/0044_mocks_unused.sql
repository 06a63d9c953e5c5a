-- The tools that a run's scenario answers for and that its assistant does not have, as JSON.
ALTER TABLE runs ADD COLUMN mocks_unused TEXT NOT NULL DEFAULT '[]';
