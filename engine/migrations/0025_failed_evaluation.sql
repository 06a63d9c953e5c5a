-- What failed of a run, for lists: they do not read all evaluations.
ALTER TABLE runs ADD COLUMN failed_evaluation TEXT;
