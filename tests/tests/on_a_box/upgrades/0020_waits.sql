UPDATE calls SET waits = '[140]' WHERE id = 'call_~04';
