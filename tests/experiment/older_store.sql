PRAGMA application_id = 1952998765;
PRAGMA user_version = 7;
BEGIN TRANSACTION;
CREATE TABLE artifacts (
	run INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	media_type TEXT NOT NULL, 
	content BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (run, name)
);
CREATE TABLE definitions (
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	configuration TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	content TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (name, version)
);
CREATE TABLE evaluations (
	evaluation INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	config TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (evaluation), 
	CONSTRAINT evaluations_by_fingerprint UNIQUE (run, fingerprint)
);
INSERT INTO "evaluations" VALUES(1,1,'45ff90848ab401123c9e6455de835bdfa4ea5fc96aaa07f7af508353a2b1995e','{"extractor":{"class":"themis.evaluation.extractors.text.IdentityExtractor","parameters":{"strip_whitespace":true},"code":"51901c1f1d795b17beb87d27163e6847"},"metrics":[{"class":"themis.evaluation.metrics.text.ExactMatch","parameters":{"case_sensitive":false,"ignore_articles":false,"ignore_punctuation":false,"name":"ExactMatch","strip_whitespace":true},"code":"1b1ed8d6697657595999d8e187981f82"}],"unparsed":"zero","metric_names":["ExactMatch"],"score_range":{"ExactMatch":[0.0,1.0]}}',1.79494076991118264204e+09);
INSERT INTO "evaluations" VALUES(2,2,'9ac8161ec5fed722043c6d0460986e86476710a395df27943e32e0155e7f8824','{"extractor":{"class":"themis.evaluation.extractors.text.IdentityExtractor","parameters":{"strip_whitespace":true},"code":"51901c1f1d795b17beb87d27163e6847"},"metrics":[{"class":"themis.evaluation.metrics.text.ExactMatch","parameters":{"case_sensitive":false,"ignore_articles":false,"ignore_punctuation":false,"name":"ExactMatch","strip_whitespace":true},"code":"1b1ed8d6697657595999d8e187981f82"}],"unparsed":"zero","strategy":{"class":"themis.evaluation.strategies.FixedStrategy","parameters":{"strategy":{"class":"themis.evaluation.strategies.AttemptAwareEvaluationStrategy","parameters":{"average_attempts":true}}},"code":"4a60bafdf8182155762ed65722e76fcb"},"metric_names":["ExactMatch"],"score_range":{"ExactMatch":[0.0,1.0]}}',1.79494077011653280261e+09);
INSERT INTO "evaluations" VALUES(3,3,'45ff90848ab401123c9e6455de835bdfa4ea5fc96aaa07f7af508353a2b1995e','{"extractor":{"class":"themis.evaluation.extractors.text.IdentityExtractor","parameters":{"strip_whitespace":true},"code":"51901c1f1d795b17beb87d27163e6847"},"metrics":[{"class":"themis.evaluation.metrics.text.ExactMatch","parameters":{"case_sensitive":false,"ignore_articles":false,"ignore_punctuation":false,"name":"ExactMatch","strip_whitespace":true},"code":"1b1ed8d6697657595999d8e187981f82"}],"unparsed":"zero","metric_names":["ExactMatch"],"score_range":{"ExactMatch":[0.0,1.0]}}',1.79494077017645454414e+09);
INSERT INTO "evaluations" VALUES(4,4,'99377e051028705cfda8c1631fa83cd97edd31aac9711f4a5450108867b6e4c2','{"extractor":{"class":"themis.evaluation.extractors.text.ThinkTagStripper","parameters":{"tags":["think","thinking","thought","reasoning"]},"code":"db5245319ace997ec79409ae6ba9c137"},"metrics":[{"class":"themis.evaluation.metrics.numeric.Numeric","parameters":{"name":"Numeric","relative_tolerance":0.0,"tolerance":0.0},"code":"87ab189eb6c44e209a9ed8f185a94425"}],"unparsed":"zero","metric_names":["Numeric"],"score_range":{"Numeric":[0.0,1.0]}}',1.79494077027343130114e+09);
CREATE TABLE items (
	fingerprint VARCHAR(32) NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (fingerprint)
);
INSERT INTO "items" VALUES('62e049474af95ec2a4155d8dffa67590','{"answer":"1","id":"0","question":"0+1"}');
INSERT INTO "items" VALUES('742ac28236d835de4887206646846f9b','{"answer":"2","id":"1","question":"1+1"}');
INSERT INTO "items" VALUES('d4ce4b4232de2f876de279030c0dd409','{"answer":"3","id":"2","question":"2+1"}');
INSERT INTO "items" VALUES('0b3472a0444b0c13d06cc53ec99d7f2e','{"answer":"4","id":"3","question":"3+1"}');
INSERT INTO "items" VALUES('dce843acbc7b1918dd1229147197644f','{"answer":"1","id":"0","question":"0+1","sampling":"stratified"}');
INSERT INTO "items" VALUES('53d7873a6ed5dda3a420671425ad6ada','{"answer":"2","id":"1","question":"1+1","sampling":"stratified"}');
INSERT INTO "items" VALUES('780393cef303085ea5b828a1d549ebf8','{"answer":"3","id":"2","question":"2+1","sampling":"stratified"}');
INSERT INTO "items" VALUES('a7351655b0ecdbed49472c847c2c687e','{"answer":"4","id":"3","question":"3+1","sampling":"stratified"}');
INSERT INTO "items" VALUES('171dc029005c518381d065eab8f99105','{"answer":"63","id":"0","question":"A baker fills 6 trays with 12 rolls each and gives 9 rolls to a school. How many rolls are left?"}');
INSERT INTO "items" VALUES('9171dada3f5c5a94738d9462688aefe8','{"answer":"1200","id":"1","question":"Mira saves $45 a week for 28 weeks and then buys a bicycle for $60. How many dollars does she have left?"}');
INSERT INTO "items" VALUES('6025d7c7a02a5a90be6a6be598be1b33','{"answer":"32","id":"2","question":"A tank loses 3 litres of water an hour. It holds 50 litres at noon. How many litres does it hold at 6 p.m.?"}');
CREATE TABLE judgements (
	"key" VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE meta (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE records (
	run INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	attempt INTEGER NOT NULL, 
	"key" VARCHAR(32) NOT NULL, 
	ok INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	prompt_tokens BIGINT NOT NULL, 
	completion_tokens BIGINT NOT NULL, 
	cost_usd DOUBLE, 
	seconds DOUBLE NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (run, position, attempt)
);
INSERT INTO "records" VALUES(1,0,0,'10ca64114e2f6985097b05958088fb3b',1,'{"prompt":"0+1","text":"1","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.025,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,2.49069998972117900848e-05,1794940769.92167);
INSERT INTO "records" VALUES(1,1,0,'ba126ee9fd70a964989eb8639cf1d39f',1,'{"prompt":"1+1","text":"2","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.005,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,5.07799995830282568931e-06,1794940769.92167);
INSERT INTO "records" VALUES(2,0,0,'5421dcee2f068db2a408fa82366ddf65',1,'{"prompt":"0+1","text":"1","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.021,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,2.13820021599531173706e-05,1.79494077012225770949e+09);
INSERT INTO "records" VALUES(2,0,1,'281de9b92c9d9fd8633fb653fc2e7925',1,'{"prompt":"0+1","text":"1","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.005,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,5.16699947183951735496e-06,1.79494077012225770949e+09);
INSERT INTO "records" VALUES(2,1,0,'7d94d00df0801f5bc048d01adc78ad95',1,'{"prompt":"1+1","text":"2","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.004,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,4.21599543187767267227e-06,1.79494077012225770949e+09);
INSERT INTO "records" VALUES(2,1,1,'6ea6b1a170143944f0a43fbe545046ed',1,'{"prompt":"1+1","text":"2","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.007,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,7.18099909136071801185e-06,1.79494077012225770949e+09);
INSERT INTO "records" VALUES(3,0,0,'d47c6f4115b0bf69bc25a8cd20ab555e',1,'{"prompt":"0+1","text":"1","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.046,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,4.5788001443725079298e-05,1.79494077018603491783e+09);
INSERT INTO "records" VALUES(3,1,0,'0c2519560cb08e9c3ea969bb0a147e3a',1,'{"prompt":"1+1","text":"2","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"metrics":{"prompt_tokens":1,"response_tokens":1,"generation_time_ms":0.008,"prompt_chars":3,"generation_attempts":1,"response_chars":1}}',1,1,0.0,8.12199868960306e-06,1.79494077018603491783e+09);
INSERT INTO "records" VALUES(4,0,0,'e87f6c20823af93db3da562a45a19553',1,'{"prompt":"A baker fills 6 trays with 12 rolls each and gives 9 rolls to a school. How many rolls are left?\n\nReason step by step, then end with a line of the form\nAnswer: <number>","text":"63","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":35,"completion_tokens":1,"total_tokens":36},"metrics":{"prompt_tokens":35,"response_tokens":1,"generation_time_ms":0.017,"prompt_chars":168,"generation_attempts":1,"response_chars":2}}',35,1,0.0,1.65950041264295578002e-05,1.79494077027817511551e+09);
INSERT INTO "records" VALUES(4,1,0,'a54ff125b2984c2e4aed4f6078f90eba',1,'{"prompt":"Mira saves $45 a week for 28 weeks and then buys a bicycle for $60. How many dollars does she have left?\n\nReason step by step, then end with a line of the form\nAnswer: <number>","text":"1200","raw":{"finish_reason":"stop","model":"perfect"},"usage":{"prompt_tokens":36,"completion_tokens":1,"total_tokens":37},"metrics":{"prompt_tokens":36,"response_tokens":1,"generation_time_ms":0.011,"prompt_chars":176,"generation_attempts":1,"response_chars":4}}',36,1,0.0,1.07060041045770049095e-05,1.79494077027817511551e+09);
CREATE TABLE runs (
	run INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	experiment_id TEXT NOT NULL, 
	status TEXT NOT NULL, 
	model TEXT NOT NULL, 
	benchmark TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	completed_at DOUBLE, 
	identity TEXT NOT NULL, 
	manifest_hash TEXT, 
	config TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	summary TEXT, 
	error TEXT, 
	planned INTEGER NOT NULL, 
	total BIGINT NOT NULL, 
	succeeded BIGINT NOT NULL, 
	failed BIGINT NOT NULL, 
	evaluation INTEGER, 
	calls BIGINT NOT NULL, 
	unpriced_calls BIGINT NOT NULL, 
	prompt_tokens BIGINT NOT NULL, 
	completion_tokens BIGINT NOT NULL, 
	cost_usd DOUBLE NOT NULL, 
	judge_calls BIGINT NOT NULL, 
	judge_cost_usd DOUBLE NOT NULL, 
	unpriced_judge_calls BIGINT DEFAULT '0' NOT NULL, 
	seconds DOUBLE NOT NULL, 
	cut_off BIGINT DEFAULT '0' NOT NULL, 
	waiting TEXT, 
	lease_holder TEXT, 
	lease_until DOUBLE, 
	PRIMARY KEY (run), 
	UNIQUE (run_id)
);
INSERT INTO "runs" VALUES(1,'own','samples','default','interrupted','fake:perfect',NULL,1.79494076979700350766e+09,1.79494077006242942805e+09,1.79494077006227374074e+09,'{"provider":"fake","model":"perfect","provider_options":"","sampling":"temperature=0 top_p=0.95 max_tokens=512","seed":"","endpoint":"","prompt":"{question}","dataset":"4 rows, fe8d260c54c9cc33","num_samples":"1","reference_field":"answer"}','1e993e3567100def056b925aee532232346a27fb24a3f5a0700aed4228860d68','{"reproducibility_manifest":{"schema_version":"1","model":{"identifier":"perfect","provider":"fake","provider_options":{}},"sampling":{"temperature":0.0,"top_p":0.95,"max_tokens":512},"num_samples":1,"evaluation":{"metrics":["themis.evaluation.metrics.text.ExactMatch:ExactMatch"],"extractor":"themis.evaluation.extractors.text.IdentityExtractor","fingerprint":"45ff90848ab401123c9e6455de835bdfa4ea5fc96aaa07f7af508353a2b1995e"},"dataset":{"fingerprint":"fe8d260c54c9cc33e319e514d4b7a0fff2b8b5cd93d2c3d6c3877c8f2a8dcd18","benchmark_id":null,"source":{"kind":"list"}},"prompt":{"template_hash":"627815778326e9ccb05747a72c3e4027ada08bc8ed887db01c66fefd14aa1cd5"},"seeds":{"provider_seed":null,"sampling_seed":null},"tokenizer":"cl100k_base","package_versions":{"themis-eval":"0.1.0","msgspec":"0.22.0","sqlalchemy":"2.1.8","numpy":"2.4.6","scipy":"1.17.1","aiohttp":"3.14.5","litellm":"not-installed","xllamacpp":"2026.10.11549","math-verify":"0.9.0"},"git_commit_hash":"unknown","runtime":{"python_version":"3.11.7","platform":"Linux-6.18.44-fc-v490-x86_64-with-glibc2.36"}},"manifest_hash":"1e993e3567100def056b925aee532232346a27fb24a3f5a0700aed4228860d68","task":{"model":{"identifier":"perfect","provider":"fake","metadata":{}},"sampling":{"temperature":0.0,"top_p":0.95,"max_tokens":512},"prompt":{"name":"default","template":"{question}"},"id_field":"id","reference_field":"answer","attempts":1},"specification":{"kind":"samples","workers":1,"model":"fake/perfect","prompt":"{question}","dataset":null}}','{}','{"metrics":{"ExactMatch":{"mean":1.0,"count":4,"failed":0,"unparsed":0,"partial":0,"stderr":0.0,"ci":[0.47287080450158797,1.0],"ci_method":"mid-p","attempts":4,"failed_attempts":0}},"total_samples":4,"failed_generations":0,"cost":{"total_cost":0.0,"generation_cost":0.0,"evaluation_cost":0.0,"currency":"USD","token_counts":{"prompt_tokens":4,"completion_tokens":4,"total_tokens":8,"answers_without_tokens":0},"api_calls":4,"judge_calls":0,"per_model_costs":{"perfect":0.0},"pricing_version":"2025-08","pricing_updated_at":"2025-08-15"},"performance":{"attempts":4,"failed_attempts":0,"latency_seconds":{"p50":5.077999958302826e-6,"p90":0.00002490699989721179,"p99":0.00002490699989721179},"truncated":0,"truncated_share":0.0,"cost_per_success_usd":{"ExactMatch":0.0},"tokens_per_success":{"ExactMatch":2.0}}}',NULL,1,4,4,0,1,4,0,4,4,0.0,0,0.0,0,4.04800084652379155158e-05,0,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(2,'warm','samples','default','interrupted','fake:perfect',NULL,1.79494077007317066191e+09,1.79494077013533329971e+09,1.79494077013523364071e+09,'{"provider":"fake","model":"perfect","provider_options":"","sampling":"temperature=0.7 top_p=0.95 max_tokens=64","seed":"","endpoint":"","prompt":"{question}","dataset":"4 rows, fe8d260c54c9cc33","num_samples":"2","reference_field":"answer"}','a9c91a77bddbdf8d42d4c0dda102bcbdfa9839df8ba167e227d9f6c96cc6f5c6','{"reproducibility_manifest":{"schema_version":"1","model":{"identifier":"perfect","provider":"fake","provider_options":{}},"sampling":{"temperature":0.7,"top_p":0.95,"max_tokens":64},"num_samples":2,"evaluation":{"metrics":["themis.evaluation.metrics.text.ExactMatch:ExactMatch"],"extractor":"themis.evaluation.extractors.text.IdentityExtractor","fingerprint":"9ac8161ec5fed722043c6d0460986e86476710a395df27943e32e0155e7f8824"},"dataset":{"fingerprint":"fe8d260c54c9cc33e319e514d4b7a0fff2b8b5cd93d2c3d6c3877c8f2a8dcd18","benchmark_id":null,"source":{"kind":"list"}},"prompt":{"template_hash":"627815778326e9ccb05747a72c3e4027ada08bc8ed887db01c66fefd14aa1cd5"},"seeds":{"provider_seed":null,"sampling_seed":null},"tokenizer":"cl100k_base","package_versions":{"themis-eval":"0.1.0","msgspec":"0.22.0","sqlalchemy":"2.1.8","numpy":"2.4.6","scipy":"1.17.1","aiohttp":"3.14.5","litellm":"not-installed","xllamacpp":"2026.10.11549","math-verify":"0.9.0"},"git_commit_hash":"unknown","runtime":{"python_version":"3.11.7","platform":"Linux-6.18.44-fc-v490-x86_64-with-glibc2.36"}},"manifest_hash":"a9c91a77bddbdf8d42d4c0dda102bcbdfa9839df8ba167e227d9f6c96cc6f5c6","task":{"model":{"identifier":"perfect","provider":"fake","metadata":{}},"sampling":{"temperature":0.7,"top_p":0.95,"max_tokens":64},"prompt":{"name":"default","template":"{question}"},"id_field":"id","reference_field":"answer","attempts":2},"specification":{"kind":"samples","workers":1,"model":"fake/perfect","prompt":"{question}","temperature":0.7,"max_tokens":64,"num_samples":2,"dataset":null}}','{}','{"metrics":{"ExactMatch":{"mean":1.0,"count":4,"failed":0,"unparsed":0,"partial":0,"stderr":0.0,"ci":[0.47287080450158797,1.0],"ci_method":"mid-p","attempts":8,"failed_attempts":0}},"total_samples":4,"failed_generations":0,"cost":{"total_cost":0.0,"generation_cost":0.0,"evaluation_cost":0.0,"currency":"USD","token_counts":{"prompt_tokens":8,"completion_tokens":8,"total_tokens":16,"answers_without_tokens":0},"api_calls":8,"judge_calls":0,"per_model_costs":{"perfect":0.0},"pricing_version":"2025-08","pricing_updated_at":"2025-08-15"},"performance":{"attempts":8,"failed_attempts":0,"latency_seconds":{"p50":3.726003342308104e-6,"p90":0.000021382002159953117,"p99":0.000021382002159953117},"truncated":0,"truncated_share":0.0,"cost_per_success_usd":{"ExactMatch":0.0},"tokens_per_success":{"ExactMatch":4.0}}}',NULL,1,4,4,0,2,8,0,8,8,0.0,0,0.0,0,4.98350054840557277202e-05,0,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(3,'labelled','samples','default','interrupted','fake:perfect',NULL,1.79494077014551138872e+09,1.79494077020285415654e+09,1.79494077020274829864e+09,'{"provider":"fake","model":"perfect","provider_options":"","sampling":"temperature=0 top_p=0.95 max_tokens=512","seed":"","endpoint":"","prompt":"{question}","dataset":"4 rows, 6f51b345d79b7aa5","num_samples":"1","reference_field":"answer"}','b9365f14463161ec879e094b697f53b89dde8c7cbdb33835fda09c926f1c4fa9','{"reproducibility_manifest":{"schema_version":"1","model":{"identifier":"perfect","provider":"fake","provider_options":{}},"sampling":{"temperature":0.0,"top_p":0.95,"max_tokens":512},"num_samples":1,"evaluation":{"metrics":["themis.evaluation.metrics.text.ExactMatch:ExactMatch"],"extractor":"themis.evaluation.extractors.text.IdentityExtractor","fingerprint":"45ff90848ab401123c9e6455de835bdfa4ea5fc96aaa07f7af508353a2b1995e"},"dataset":{"fingerprint":"6f51b345d79b7aa5d5cd8741194b87020eddd6cd951c402988d2dd5867fcc470","benchmark_id":null,"source":{"kind":"list"}},"prompt":{"template_hash":"627815778326e9ccb05747a72c3e4027ada08bc8ed887db01c66fefd14aa1cd5"},"seeds":{"provider_seed":null,"sampling_seed":null},"tokenizer":"cl100k_base","package_versions":{"themis-eval":"0.1.0","msgspec":"0.22.0","sqlalchemy":"2.1.8","numpy":"2.4.6","scipy":"1.17.1","aiohttp":"3.14.5","litellm":"not-installed","xllamacpp":"2026.10.11549","math-verify":"0.9.0"},"git_commit_hash":"unknown","runtime":{"python_version":"3.11.7","platform":"Linux-6.18.44-fc-v490-x86_64-with-glibc2.36"}},"manifest_hash":"b9365f14463161ec879e094b697f53b89dde8c7cbdb33835fda09c926f1c4fa9","task":{"model":{"identifier":"perfect","provider":"fake","metadata":{}},"sampling":{"temperature":0.0,"top_p":0.95,"max_tokens":512},"prompt":{"name":"default","template":"{question}"},"id_field":"id","reference_field":"answer","attempts":1},"specification":{"kind":"samples","workers":1,"model":"fake/perfect","prompt":"{question}","dataset":null}}','{}','{"metrics":{"ExactMatch":{"mean":1.0,"count":4,"failed":0,"unparsed":0,"partial":0,"stderr":0.0,"ci":[0.47287080450158797,1.0],"ci_method":"mid-p","attempts":4,"failed_attempts":0}},"total_samples":4,"failed_generations":0,"cost":{"total_cost":0.0,"generation_cost":0.0,"evaluation_cost":0.0,"currency":"USD","token_counts":{"prompt_tokens":4,"completion_tokens":4,"total_tokens":8,"answers_without_tokens":0},"api_calls":4,"judge_calls":0,"per_model_costs":{"perfect":0.0},"pricing_version":"2025-08","pricing_updated_at":"2025-08-15"},"performance":{"attempts":4,"failed_attempts":0,"latency_seconds":{"p50":3.0950031941756606e-6,"p90":0.00004578800144372508,"p99":0.00004578800144372508},"truncated":0,"truncated_share":0.0,"cost_per_success_usd":{"ExactMatch":0.0},"tokens_per_success":{"ExactMatch":2.0}}}',NULL,1,4,4,0,3,4,0,4,4,0.0,0,0.0,0,5.93389995628967881202e-05,0,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(4,'benchmark','samples','default','interrupted','fake:perfect','gsm8k',1.79494077023181104659e+09,1.79494077029118871691e+09,1.79494077029109573365e+09,'{"provider":"fake","model":"perfect","provider_options":"","sampling":"temperature=0 top_p=0.95 max_tokens=512","seed":"","endpoint":"","prompt":"{question}\n\nReason step by step, then end with a line of the form\nAnswer: <number>","dataset":"3 rows, 003630029f966662","num_samples":"1","reference_field":"answer"}','2f4220055ba26759e6a457aeb36a86897295446f020e3974a6a1c205b34755f2','{"reproducibility_manifest":{"schema_version":"1","model":{"identifier":"perfect","provider":"fake","provider_options":{}},"sampling":{"temperature":0.0,"top_p":0.95,"max_tokens":512},"num_samples":1,"evaluation":{"metrics":["themis.evaluation.metrics.numeric.Numeric:Numeric"],"extractor":"themis.evaluation.extractors.text.ThinkTagStripper","fingerprint":"99377e051028705cfda8c1631fa83cd97edd31aac9711f4a5450108867b6e4c2"},"dataset":{"fingerprint":"003630029f966662122eb77b09f9cffaab56b0156a5b2f5777f2313d95c28ca8","benchmark_id":"gsm8k","source":{"kind":"benchmark","name":"gsm8k"}},"prompt":{"template_hash":"6ea2bdb4ec73535ade15171620b43adcd0650a5ee6ed442d446a237034cb10f6"},"seeds":{"provider_seed":null,"sampling_seed":null},"tokenizer":"cl100k_base","package_versions":{"themis-eval":"0.1.0","msgspec":"0.22.0","sqlalchemy":"2.1.8","numpy":"2.4.6","scipy":"1.17.1","aiohttp":"3.14.5","litellm":"not-installed","xllamacpp":"2026.10.11549","math-verify":"0.9.0"},"git_commit_hash":"unknown","runtime":{"python_version":"3.11.7","platform":"Linux-6.18.44-fc-v490-x86_64-with-glibc2.36"}},"manifest_hash":"2f4220055ba26759e6a457aeb36a86897295446f020e3974a6a1c205b34755f2","task":{"model":{"identifier":"perfect","provider":"fake","metadata":{}},"sampling":{"temperature":0.0,"top_p":0.95,"max_tokens":512},"prompt":{"name":"gsm8k","template":"{question}\n\nReason step by step, then end with a line of the form\nAnswer: <number>"},"id_field":"id","reference_field":"answer","attempts":1},"specification":{"kind":"samples","dataset":"gsm8k","model":"fake/perfect","sample":true}}','{}','{"metrics":{"Numeric":{"mean":1.0,"count":3,"failed":0,"unparsed":0,"partial":0,"stderr":0.0,"ci":[0.36840314986403866,1.0],"ci_method":"mid-p","attempts":3,"failed_attempts":0}},"total_samples":3,"failed_generations":0,"cost":{"total_cost":0.0,"generation_cost":0.0,"evaluation_cost":0.0,"currency":"USD","token_counts":{"prompt_tokens":109,"completion_tokens":3,"total_tokens":112,"answers_without_tokens":0},"api_calls":3,"judge_calls":0,"per_model_costs":{"perfect":0.0},"pricing_version":"2025-08","pricing_updated_at":"2025-08-15"},"performance":{"attempts":3,"failed_attempts":0,"latency_seconds":{"p50":0.000010706004104577005,"p90":0.000016595004126429558,"p99":0.000016595004126429558},"truncated":0,"truncated_share":0.0,"cost_per_success_usd":{"Numeric":0.0},"tokens_per_success":{"Numeric":37.333333333333336}}}',NULL,1,3,3,0,4,3,0,109,3,0.0,0,0.0,0,3.18480088026262819766e-05,0,NULL,NULL,NULL);
CREATE TABLE samples (
	run INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	item_id TEXT NOT NULL, 
	fingerprint VARCHAR(32) NOT NULL, 
	cluster TEXT, 
	PRIMARY KEY (run, position), 
	CONSTRAINT samples_by_id UNIQUE (run, item_id)
)
 WITHOUT ROWID

;
INSERT INTO "samples" VALUES(1,0,'0','62e049474af95ec2a4155d8dffa67590',NULL);
INSERT INTO "samples" VALUES(1,1,'1','742ac28236d835de4887206646846f9b',NULL);
INSERT INTO "samples" VALUES(1,2,'2','d4ce4b4232de2f876de279030c0dd409',NULL);
INSERT INTO "samples" VALUES(1,3,'3','0b3472a0444b0c13d06cc53ec99d7f2e',NULL);
INSERT INTO "samples" VALUES(2,0,'0','62e049474af95ec2a4155d8dffa67590',NULL);
INSERT INTO "samples" VALUES(2,1,'1','742ac28236d835de4887206646846f9b',NULL);
INSERT INTO "samples" VALUES(2,2,'2','d4ce4b4232de2f876de279030c0dd409',NULL);
INSERT INTO "samples" VALUES(2,3,'3','0b3472a0444b0c13d06cc53ec99d7f2e',NULL);
INSERT INTO "samples" VALUES(3,0,'0','dce843acbc7b1918dd1229147197644f',NULL);
INSERT INTO "samples" VALUES(3,1,'1','53d7873a6ed5dda3a420671425ad6ada',NULL);
INSERT INTO "samples" VALUES(3,2,'2','780393cef303085ea5b828a1d549ebf8',NULL);
INSERT INTO "samples" VALUES(3,3,'3','a7351655b0ecdbed49472c847c2c687e',NULL);
INSERT INTO "samples" VALUES(4,0,'0','171dc029005c518381d065eab8f99105',NULL);
INSERT INTO "samples" VALUES(4,1,'1','9171dada3f5c5a94738d9462688aefe8',NULL);
INSERT INTO "samples" VALUES(4,2,'2','6025d7c7a02a5a90be6a6be598be1b33',NULL);
CREATE TABLE scores (
	evaluation INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	metric TEXT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	value DOUBLE, 
	outcome VARCHAR(8) NOT NULL, 
	details TEXT, 
	PRIMARY KEY (evaluation, position, metric, ordinal)
)
 WITHOUT ROWID

;
INSERT INTO "scores" VALUES(1,0,'ExactMatch',0,1.0,'scored','{"details":{"matched_reference":"1"},"metadata":{}}');
INSERT INTO "scores" VALUES(1,1,'ExactMatch',0,1.0,'scored','{"details":{"matched_reference":"2"},"metadata":{}}');
INSERT INTO "scores" VALUES(2,0,'ExactMatch',0,1.0,'scored','{"details":{},"metadata":{"attempts":2}}');
INSERT INTO "scores" VALUES(2,1,'ExactMatch',0,1.0,'scored','{"details":{},"metadata":{"attempts":2}}');
INSERT INTO "scores" VALUES(3,0,'ExactMatch',0,1.0,'scored','{"details":{"matched_reference":"1"},"metadata":{}}');
INSERT INTO "scores" VALUES(3,1,'ExactMatch',0,1.0,'scored','{"details":{"matched_reference":"2"},"metadata":{}}');
INSERT INTO "scores" VALUES(4,0,'Numeric',0,1.0,'scored','{"details":{"answer":"63"},"metadata":{}}');
INSERT INTO "scores" VALUES(4,1,'Numeric',0,1.0,'scored','{"details":{"answer":"1200"},"metadata":{}}');
CREATE TABLE turns (
	run INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	test_id TEXT, 
	body TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (run, seq)
)
 WITHOUT ROWID

;
CREATE INDEX runs_by_age ON runs (created_at);
CREATE INDEX runs_by_change ON runs (updated_at);
CREATE INDEX records_by_key ON records ("key");
CREATE INDEX records_overview ON records (run, created_at, attempt, ok, seconds, position);
COMMIT;