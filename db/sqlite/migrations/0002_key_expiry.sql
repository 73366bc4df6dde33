ALTER TABLE `api_keys` ADD `expires_at_ms` integer;--> statement-breakpoint
CREATE INDEX `api_keys_expiry` ON `api_keys` (`expires_at_ms`) WHERE "api_keys"."revoked_at_ms" IS NULL;