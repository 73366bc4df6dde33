CREATE TABLE `invitations` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`email` text NOT NULL,
	`role` text NOT NULL,
	`invited_by_user_id` text,
	`token_sha256` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL,
	`accepted_at_ms` integer,
	`revoked_at_ms` integer,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`invited_by_user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "invitations_role" CHECK("invitations"."role" IN ('owner', 'admin', 'developer', 'billing', 'reader')),
	CONSTRAINT "invitations_token_sha256" CHECK(length("invitations"."token_sha256") = 64)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `invitations_token_sha256_unique` ON `invitations` (`token_sha256`);--> statement-breakpoint
CREATE INDEX `invitations_organization` ON `invitations` (`organization_id`,`created_at_ms`);--> statement-breakpoint
CREATE INDEX `invitations_email` ON `invitations` (`email`);--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`token_sha256` text NOT NULL,
	`ip_address` text,
	`user_agent` text,
	`created_at_ms` integer NOT NULL,
	`last_seen_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "sessions_token_sha256" CHECK(length("sessions"."token_sha256") = 64)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_token_sha256_unique` ON `sessions` (`token_sha256`);--> statement-breakpoint
CREATE INDEX `sessions_user` ON `sessions` (`user_id`);--> statement-breakpoint
CREATE INDEX `sessions_expiry` ON `sessions` (`expires_at_ms`);--> statement-breakpoint
CREATE TABLE `sign_in_accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`provider` text NOT NULL,
	`external_id` text NOT NULL,
	`password_hash` text,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `sign_in_accounts_external` ON `sign_in_accounts` (`provider`,`external_id`);--> statement-breakpoint
CREATE INDEX `sign_in_accounts_user` ON `sign_in_accounts` (`user_id`);--> statement-breakpoint
CREATE TABLE `trail_entries` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`organization_id` text,
	`user_id` text,
	`action` text NOT NULL,
	`object_kind` text NOT NULL,
	`object_id` text,
	`detail` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "trail_detail" CHECK(json_valid("trail_entries"."detail"))
) STRICT;
--> statement-breakpoint
CREATE INDEX `trail_organization` ON `trail_entries` (`organization_id`,`id`);--> statement-breakpoint
CREATE TABLE `verifications` (
	`id` text PRIMARY KEY NOT NULL,
	`identifier_hash` text NOT NULL,
	`value` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `verifications_identifier` ON `verifications` (`identifier_hash`);--> statement-breakpoint
CREATE INDEX `verifications_expiry` ON `verifications` (`expires_at_ms`);--> statement-breakpoint
ALTER TABLE `organizations` ADD `suspended_at_ms` integer;--> statement-breakpoint
ALTER TABLE `users` ADD `email_verified` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `is_operator` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `updated_at_ms` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `deleted_at_ms` integer;--> statement-breakpoint
UPDATE `users` SET `updated_at_ms` = `created_at_ms`;
