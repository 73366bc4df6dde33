ALTER TABLE `models` ADD `weights` text;--> statement-breakpoint
ALTER TABLE `models` ADD `weights_sha256` text;--> statement-breakpoint
ALTER TABLE `models` ADD `profile` text;--> statement-breakpoint
-- A new database gets decision-1 with its weights when the catalog is seeded.
UPDATE `models` SET `weights` = 'embedded' WHERE `id` = 'decision-1';
