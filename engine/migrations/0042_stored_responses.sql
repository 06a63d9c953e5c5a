-- The stored responses of batches, which go with their runs.
CREATE INDEX idempotency_keys_by_batch ON idempotency_keys (workspace_id, json_extract(body, '$.batch_id'));
-- The large ones, of which a workspace has a limited number.
CREATE INDEX idempotency_keys_large ON idempotency_keys (workspace_id) WHERE OCTET_LENGTH(body) > 131072;
