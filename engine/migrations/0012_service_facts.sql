-- Facts about the service as a whole, such as which server secret its data belongs to. No rows of workspaces.
CREATE TABLE service_facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
