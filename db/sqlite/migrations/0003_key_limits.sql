CREATE TABLE `__new_alerts` (
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
	CONSTRAINT "alerts_kind" CHECK("__new_alerts"."kind" IN ('credit_low', 'spend_limit_near', 'spend_limit_reached', 'key_spend_limit_near', 'key_spend_limit_reached', 'tier_changed', 'payment_credited', 'key_expires'))
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_alerts`("id", "organization_id", "kind", "subject_id", "subject_name", "amount_micros", "limit_micros", "from_tier", "to_tier", "expires_at_ms", "created_at_ms", "ended_at_ms") SELECT "id", "organization_id", "kind", "subject_id", "subject_name", "amount_micros", "limit_micros", "from_tier", "to_tier", "expires_at_ms", "created_at_ms", "ended_at_ms" FROM `alerts`;--> statement-breakpoint
DROP TABLE `alerts`;--> statement-breakpoint
ALTER TABLE `__new_alerts` RENAME TO `alerts`;--> statement-breakpoint
CREATE UNIQUE INDEX `alerts_open` ON `alerts` (`organization_id`,`kind`,`subject_id`) WHERE "alerts"."ended_at_ms" IS NULL;--> statement-breakpoint
CREATE INDEX `alerts_created` ON `alerts` (`created_at_ms`);--> statement-breakpoint
CREATE TABLE `__new_audited_project_months` (
	`project_id` text NOT NULL,
	`month` text NOT NULL,
	`spent_micros` integer NOT NULL,
	`held_micros` integer NOT NULL,
	`api_key_id` text DEFAULT '' NOT NULL,
	PRIMARY KEY(`project_id`, `month`, `api_key_id`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_audited_project_months`("project_id", "month", "spent_micros", "held_micros") SELECT "project_id", "month", "spent_micros", "held_micros" FROM `audited_project_months`;--> statement-breakpoint
DROP TABLE `audited_project_months`;--> statement-breakpoint
ALTER TABLE `__new_audited_project_months` RENAME TO `audited_project_months`;--> statement-breakpoint
CREATE TABLE `__new_project_months` (
	`project_id` text NOT NULL,
	`month` text NOT NULL,
	`spent_micros` integer DEFAULT 0 NOT NULL,
	`held_micros` integer DEFAULT 0 NOT NULL,
	`api_key_id` text DEFAULT '' NOT NULL,
	PRIMARY KEY(`project_id`, `month`, `api_key_id`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "project_months_spent" CHECK("__new_project_months"."spent_micros" >= 0),
	CONSTRAINT "project_months_held" CHECK("__new_project_months"."held_micros" >= 0)
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_project_months`("project_id", "month", "spent_micros", "held_micros") SELECT "project_id", "month", "spent_micros", "held_micros" FROM `project_months`;--> statement-breakpoint
DROP TABLE `project_months`;--> statement-breakpoint
ALTER TABLE `__new_project_months` RENAME TO `project_months`;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `first_key_id` text REFERENCES api_keys(id);--> statement-breakpoint
ALTER TABLE `api_keys` ADD `monthly_limit_micros` integer;--> statement-breakpoint
ALTER TABLE `ledger_entries` ADD `api_key_id` text;