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
ALTER TABLE `organizations` ADD `credit_alert_micros` integer;--> statement-breakpoint
CREATE INDEX `organizations_credit_alert` ON `organizations` (`credit_alert_micros`) WHERE "organizations"."credit_alert_micros" IS NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `gets_alert_mails` integer DEFAULT true NOT NULL;--> statement-breakpoint
CREATE INDEX `projects_limited` ON `projects` (`spend_limit_micros`) WHERE "projects"."spend_limit_micros" IS NOT NULL;