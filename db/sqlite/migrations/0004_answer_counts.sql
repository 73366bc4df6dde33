CREATE TABLE `answer_counts` (
	`model_id` text NOT NULL,
	`day` text NOT NULL,
	`question` integer NOT NULL,
	`class` integer NOT NULL,
	`answers` integer NOT NULL,
	PRIMARY KEY(`model_id`, `day`, `question`, `class`),
	FOREIGN KEY (`model_id`) REFERENCES `models`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "answer_counts_answers" CHECK("answer_counts"."answers" > 0)
) STRICT;
