-- How long the caller waited for each answer, a list of ms without the turns that were not answered; NULL for none.
ALTER TABLE calls ADD COLUMN waits TEXT;
