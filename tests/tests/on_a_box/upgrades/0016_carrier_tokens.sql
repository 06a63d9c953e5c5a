INSERT INTO carrier_tokens (provider, id, request, expires_at) VALUES
  ('vonage', 'jti-1', '1f58b9145b24d108d7ac38887338b3ea3229833b9c1e418250343f907bfd1047', 1700003600000);
