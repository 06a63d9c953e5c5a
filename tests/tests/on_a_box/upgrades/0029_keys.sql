UPDATE assistants SET keys = 1 WHERE id = 'asst_~02';
