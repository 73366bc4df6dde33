CREATE TABLE `model_tunings` (
	`model_id` text PRIMARY KEY NOT NULL,
	`tuning` text NOT NULL,
	FOREIGN KEY (`model_id`) REFERENCES `models`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
ALTER TABLE `models` ADD `base_id` text REFERENCES models(id);--> statement-breakpoint
ALTER TABLE `models` ADD `tuning_sha256` text;--> statement-breakpoint
ALTER TABLE `models` ADD `organization_id` text REFERENCES organizations(id);