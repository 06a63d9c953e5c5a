UPDATE api_keys SET last_used_at = 1700000000000;
UPDATE numbers SET last_callback_at = 1700000100000;
