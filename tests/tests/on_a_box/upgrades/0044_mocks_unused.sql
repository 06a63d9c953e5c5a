UPDATE runs SET mocks_unused = '["find_slot"]' WHERE id = 'run_~03';
