CREATE TABLE `audit_checkpoints` (
	`id` integer PRIMARY KEY NOT NULL,
	`last_entry_id` integer NOT NULL,
	`last_usage_row_id` integer NOT NULL,
	`last_usage_request_id` text,
	`checked_at_ms` integer NOT NULL,
	`checked_whole_at_ms` integer NOT NULL,
	CONSTRAINT "audit_checkpoints_one" CHECK("audit_checkpoints"."id" = 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `audited_organizations` (
	`organization_id` text PRIMARY KEY NOT NULL,
	`credit_micros` integer NOT NULL,
	`held_micros` integer NOT NULL,
	`paid_micros` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `audited_project_months` (
	`project_id` text NOT NULL,
	`month` text NOT NULL,
	`spent_micros` integer NOT NULL,
	`held_micros` integer NOT NULL,
	PRIMARY KEY(`project_id`, `month`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `ledger_days` (
	`project_id` text NOT NULL,
	`day` text NOT NULL,
	`organization_id` text NOT NULL,
	`last_entry_id` integer NOT NULL,
	`charges` integer NOT NULL,
	`charged_micros` integer NOT NULL,
	PRIMARY KEY(`project_id`, `day`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "ledger_days_charges" CHECK("ledger_days"."charges" > 0),
	CONSTRAINT "ledger_days_charged" CHECK("ledger_days"."charged_micros" >= 0)
) STRICT;
--> statement-breakpoint
CREATE INDEX `ledger_days_organization` ON `ledger_days` (`organization_id`,`last_entry_id`);--> statement-breakpoint
CREATE TABLE `usage_days` (
	`organization_id` text NOT NULL,
	`day` text NOT NULL,
	`project_id` text NOT NULL,
	`api_key_id` text NOT NULL,
	`model` text NOT NULL,
	`mode` text NOT NULL,
	`endpoint` text NOT NULL,
	`status` integer NOT NULL,
	`requests` integer NOT NULL,
	`questions` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cost_micros` integer NOT NULL,
	PRIMARY KEY(`organization_id`, `day`, `project_id`, `api_key_id`, `model`, `mode`, `endpoint`, `status`),
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`api_key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "usage_days_mode" CHECK("usage_days"."mode" IN ('fast', 'consistent')),
	CONSTRAINT "usage_days_requests" CHECK("usage_days"."requests" > 0),
	CONSTRAINT "usage_days_failed_is_free" CHECK("usage_days"."status" = 200 OR ("usage_days"."questions" = 0 AND "usage_days"."cost_micros" = 0))
) STRICT;
--> statement-breakpoint
DROP INDEX `ledger_organization`;--> statement-breakpoint
CREATE INDEX `ledger_organization_ends` ON `ledger_entries` (`organization_id`,`id`) WHERE "ledger_entries"."kind" <> 'hold';