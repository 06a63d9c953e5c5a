UPDATE scenarios SET judge_votes = 3 WHERE id = 'scen_~02';
