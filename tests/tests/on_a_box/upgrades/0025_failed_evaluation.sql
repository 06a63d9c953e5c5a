UPDATE runs SET failed_evaluation = '“nine”: No line says it.' WHERE id = 'run_~02';
