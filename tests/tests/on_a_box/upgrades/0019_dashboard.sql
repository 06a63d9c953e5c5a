INSERT INTO accounts (id, issuer, subject, email, created_at) VALUES
  ('acct_~01', 'email', 'ada@example.com', 'ada@example.com', 1700000000000);
INSERT INTO memberships (workspace_id, account_id, role, created_at) VALUES ('ws_~01', 'acct_~01', 'admin', 1700000000000);
INSERT INTO sessions (id, hash, account_id, workspace_id, client, created_at, seen_at, expires_at) VALUES
  ('sess_~01', '3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175', 'acct_~01', 'ws_~01', 'Firefox', 1700000000000,
   1700000000000, 1702592000000);
INSERT INTO sign_ins (id, kind, email, source, visit_hash, code_hash, link_hash, next, tries, used_at, created_at, expires_at) VALUES
  ('sgn_~01', 'email', 'ada@example.com', '192.0.2.1', 'f0e68ac26df2184062ae2a945cd0b5e58466d75d6858359b7127776e9710a364',
   '5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b', 'b1b1bdb480c61d075300d9bff7d9cb69cf31695ea048e478facadf426e8d0fb0', '/', 1,
   1700000060000, 1700000000000, 1700000900000);
INSERT INTO oidc_sign_ins (state_hash, visit_hash, source, issuer, nonce, verifier, next, created_at) VALUES
  ('4ba69735ca53765ed6a709edb56c6ea236b7193a3b29a6b390c346f0f4340e4e', 'f0e68ac26df2184062ae2a945cd0b5e58466d75d6858359b7127776e9710a364', '192.0.2.1',
   'https://accounts.example', 'nonce', 'verifier', '/', 1700000000000);
INSERT INTO invitations (id, workspace_id, email, role, hash, invited_by, created_at, expires_at) VALUES
  ('inv_~01', 'ws_~01', 'ben@example.com', 'member', 'a3013c082c75edc913598c3baac1afa18f7633fe8f014896ab2f1a72ff83d8ba',
   'ada@example.com', 1700000000000, 1700604800000);
INSERT INTO audit_entries (id, workspace_id, actor, actor_name, operation, subject, created_at) VALUES
  ('aud_~01', 'ws_~01', 'acct_~01', 'ada@example.com', 'update_assistant', 'asst_~01', 1700000000000);
