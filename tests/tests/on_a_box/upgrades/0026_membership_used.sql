UPDATE memberships SET used_at = 1700000000000;
