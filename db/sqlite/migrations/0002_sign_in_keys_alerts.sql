CREATE TABLE `alert_recipients` (
	`alert_id` integer NOT NULL,
	`user_id` text NOT NULL,
	`read_at_ms` integer,
	`mail_due_ms` integer,
	PRIMARY KEY(`alert_id`, `user_id`),
	FOREIGN KEY (`alert_id`) REFERENCES `alerts`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `alert_recipients_user` ON `alert_recipients` (`user_id`,`alert_id`);--> statement-breakpoint
CREATE INDEX `alert_recipients_due` ON `alert_recipients` (`mail_due_ms`) WHERE "alert_recipients"."mail_due_ms" IS NOT NULL;--> statement-breakpoint
CREATE TABLE `alerts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`organization_id` text NOT NULL,
	`kind` text NOT NULL,
	`subject_id` text NOT NULL,
	`subject_name` text,
	`amount_micros` integer,
	`limit_micros` integer,
	`from_tier` integer,
	`to_tier` integer,
	`expires_at_ms` integer,
	`created_at_ms` integer NOT NULL,
	`ended_at_ms` integer,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "alerts_kind" CHECK("alerts"."kind" IN ('credit_low', 'spend_limit_near', 'spend_limit_reached', 'tier_changed', 'payment_credited', 'key_expires'))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `alerts_open` ON `alerts` (`organization_id`,`kind`,`subject_id`) WHERE "alerts"."ended_at_ms" IS NULL;--> statement-breakpoint
CREATE INDEX `alerts_created` ON `alerts` (`created_at_ms`);--> statement-breakpoint
CREATE TABLE `passkeys` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`name` text NOT NULL,
	`credential_id` text NOT NULL,
	`public_key` text NOT NULL,
	`signatures` integer NOT NULL,
	`device_type` text NOT NULL,
	`is_backed_up` integer NOT NULL,
	`transports` text NOT NULL,
	`model_id` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`last_used_at_ms` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "passkeys_signatures" CHECK("passkeys"."signatures" >= 0)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `passkeys_credential_id_unique` ON `passkeys` (`credential_id`);--> statement-breakpoint
CREATE INDEX `passkeys_user` ON `passkeys` (`user_id`);--> statement-breakpoint
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
ALTER TABLE `api_keys` ADD `expires_at_ms` integer;--> statement-breakpoint
CREATE INDEX `api_keys_expiry` ON `api_keys` (`expires_at_ms`) WHERE "api_keys"."revoked_at_ms" IS NULL;--> statement-breakpoint
ALTER TABLE `organizations` ADD `credit_alert_micros` integer;--> statement-breakpoint
CREATE INDEX `organizations_credit_alert` ON `organizations` (`credit_alert_micros`) WHERE "organizations"."credit_alert_micros" IS NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `has_second_factor` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `gets_alert_mails` integer DEFAULT true NOT NULL;--> statement-breakpoint
CREATE INDEX `projects_limited` ON `projects` (`spend_limit_micros`) WHERE "projects"."spend_limit_micros" IS NOT NULL;