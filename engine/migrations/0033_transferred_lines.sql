-- The line of a telephone call that was handed over, until it has ended: when it is hung up at the latest, and what is
-- reserved for it under a monthly limit (null: nothing).
ALTER TABLE phone_calls ADD COLUMN line_until INTEGER;
ALTER TABLE phone_calls ADD COLUMN line_microusd INTEGER;
CREATE INDEX phone_calls_handed_over ON phone_calls (workspace_id) WHERE line_until IS NOT NULL;
