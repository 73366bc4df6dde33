CREATE TABLE `second_factors` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`secret_encrypted` text NOT NULL,
	`recovery_codes_encrypted` text NOT NULL,
	`is_confirmed` integer DEFAULT false NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`locked_until_ms` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "second_factors_failures" CHECK("second_factors"."failures" >= 0)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `second_factors_user_id_unique` ON `second_factors` (`user_id`);--> statement-breakpoint
ALTER TABLE `users` ADD `has_second_factor` integer DEFAULT false NOT NULL;