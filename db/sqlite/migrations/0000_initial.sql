CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`name` text NOT NULL,
	`secret_sha256` text NOT NULL,
	`display_prefix` text NOT NULL,
	`created_by_user_id` text,
	`created_at_ms` integer NOT NULL,
	`last_used_at_ms` integer,
	`revoked_at_ms` integer,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`created_by_user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_secret_sha256_unique` ON `api_keys` (`secret_sha256`);--> statement-breakpoint
CREATE INDEX `api_keys_project` ON `api_keys` (`project_id`);--> statement-breakpoint
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
CREATE TABLE `idempotent_requests` (
	`api_key_id` text NOT NULL,
	`key_hash` text NOT NULL,
	`body_hash` text NOT NULL,
	`organization_id` text NOT NULL,
	`hold_entry_id` integer,
	`answer` text,
	`bytes_so_far` integer,
	`created_at_ms` integer NOT NULL,
	PRIMARY KEY(`api_key_id`, `key_hash`),
	FOREIGN KEY (`api_key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`hold_entry_id`) REFERENCES `ledger_entries`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "idempotent_requests_runs_or_answered" CHECK(("idempotent_requests"."hold_entry_id" IS NULL) = ("idempotent_requests"."answer" IS NOT NULL)
        AND ("idempotent_requests"."answer" IS NULL) = ("idempotent_requests"."bytes_so_far" IS NULL))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `idempotent_requests_hold` ON `idempotent_requests` (`hold_entry_id`) WHERE "idempotent_requests"."hold_entry_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `idempotent_requests_organization` ON `idempotent_requests` (`organization_id`,`bytes_so_far`);--> statement-breakpoint
CREATE INDEX `idempotent_requests_created` ON `idempotent_requests` (`created_at_ms`);--> statement-breakpoint
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
CREATE TABLE `ledger_entries` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`organization_id` text NOT NULL,
	`project_id` text,
	`kind` text NOT NULL,
	`credit_delta_micros` integer NOT NULL,
	`held_delta_micros` integer NOT NULL,
	`hold_entry_id` integer,
	`request_id` text,
	`month` text,
	`payment_id` text,
	`created_at_ms` integer NOT NULL,
	`process_id` text,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`hold_entry_id`) REFERENCES `ledger_entries`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`payment_id`) REFERENCES `payments`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "ledger_kind" CHECK("ledger_entries"."kind" IN ('top_up', 'refund', 'hold', 'charge', 'release')),
	CONSTRAINT "ledger_signs" CHECK(CASE "ledger_entries"."kind"
        WHEN 'top_up' THEN "ledger_entries"."credit_delta_micros" > 0 AND "ledger_entries"."held_delta_micros" = 0
        WHEN 'refund' THEN "ledger_entries"."credit_delta_micros" < 0 AND "ledger_entries"."held_delta_micros" = 0
        WHEN 'hold' THEN "ledger_entries"."credit_delta_micros" = 0 AND "ledger_entries"."held_delta_micros" >= 0 AND "ledger_entries"."request_id" IS NOT NULL
        WHEN 'charge' THEN "ledger_entries"."credit_delta_micros" <= 0 AND "ledger_entries"."held_delta_micros" <= "ledger_entries"."credit_delta_micros" AND "ledger_entries"."hold_entry_id" IS NOT NULL
        ELSE "ledger_entries"."credit_delta_micros" = 0 AND "ledger_entries"."held_delta_micros" <= 0 AND "ledger_entries"."hold_entry_id" IS NOT NULL
      END)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_one_end_a_hold` ON `ledger_entries` (`hold_entry_id`) WHERE "ledger_entries"."hold_entry_id" IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_one_hold_a_request` ON `ledger_entries` (`request_id`) WHERE "ledger_entries"."request_id" IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `ledger_one_entry_a_payment` ON `ledger_entries` (`payment_id`) WHERE "ledger_entries"."payment_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `ledger_organization_ends` ON `ledger_entries` (`organization_id`,`id`) WHERE "ledger_entries"."kind" <> 'hold';--> statement-breakpoint
CREATE TABLE `members` (
	`organization_id` text NOT NULL,
	`user_id` text NOT NULL,
	`role` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	PRIMARY KEY(`organization_id`, `user_id`),
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "members_role" CHECK("members"."role" IN ('owner', 'admin', 'developer', 'billing', 'reader'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `members_user` ON `members` (`user_id`);--> statement-breakpoint
CREATE TABLE `model_aliases` (
	`alias` text PRIMARY KEY NOT NULL,
	`model_id` text NOT NULL,
	FOREIGN KEY (`model_id`) REFERENCES `models`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `models` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`description` text NOT NULL,
	`context_tokens` integer,
	`input_price_micros_per_million_tokens` integer,
	`released_at_ms` integer,
	`weights` text,
	`weights_sha256` text,
	`profile` text,
	`upstreams` text,
	CONSTRAINT "models_kind" CHECK("models"."kind" IN ('decision', 'chat')),
	CONSTRAINT "models_status" CHECK("models"."status" IN ('live', 'coming_soon')),
	CONSTRAINT "models_live_has_price" CHECK("models"."status" <> 'live' OR "models"."input_price_micros_per_million_tokens" IS NOT NULL)
) STRICT;
--> statement-breakpoint
CREATE TABLE `organizations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`personal_user_id` text,
	`tier` integer DEFAULT 0 NOT NULL,
	`credit_micros` integer DEFAULT 0 NOT NULL,
	`held_micros` integer DEFAULT 0 NOT NULL,
	`open_holds` integer DEFAULT 0 NOT NULL,
	`paid_micros` integer DEFAULT 0 NOT NULL,
	`first_paid_at_ms` integer,
	`minimum_tier` integer,
	`requests_per_minute` integer,
	`tokens_per_minute` integer,
	`questions_per_request` integer,
	`top_up_max_micros` integer,
	`created_at_ms` integer NOT NULL,
	`suspended_at_ms` integer,
	FOREIGN KEY (`personal_user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "organizations_tier" CHECK("organizations"."tier" BETWEEN 0 AND 5),
	CONSTRAINT "organizations_minimum_tier" CHECK("organizations"."minimum_tier" IS NULL OR "organizations"."minimum_tier" BETWEEN 0 AND 5),
	CONSTRAINT "organizations_held" CHECK("organizations"."held_micros" >= 0),
	CONSTRAINT "organizations_open_holds" CHECK("organizations"."open_holds" >= 0),
	CONSTRAINT "organizations_paid" CHECK("organizations"."paid_micros" >= 0)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `organizations_personal_user_id_unique` ON `organizations` (`personal_user_id`);--> statement-breakpoint
CREATE TABLE `payment_events` (
	`provider` text NOT NULL,
	`event_id` text NOT NULL,
	`type` text NOT NULL,
	`kind` text NOT NULL,
	`occurred_at_ms` integer,
	`external_id` text,
	`payment_external_id` text,
	`payment_id` text,
	`organization_id` text,
	`amount_micros` integer,
	`outcome` text NOT NULL,
	`reason` text,
	`received_at_ms` integer NOT NULL,
	`decided_at_ms` integer NOT NULL,
	PRIMARY KEY(`provider`, `event_id`),
	CONSTRAINT "payment_events_kind" CHECK("payment_events"."kind" IN ('completed', 'canceled', 'refunded', 'refund_reversed', 'irrelevant', 'unreadable')),
	CONSTRAINT "payment_events_outcome" CHECK("payment_events"."outcome" IN ('applied', 'waiting', 'known', 'irrelevant', 'unresolved', 'assigned', 'dismissed'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `payment_events_payment` ON `payment_events` (`provider`,`payment_external_id`);--> statement-breakpoint
CREATE INDEX `payment_events_received` ON `payment_events` (`received_at_ms`);--> statement-breakpoint
CREATE TABLE `payments` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`provider` text NOT NULL,
	`external_id` text NOT NULL,
	`kind` text NOT NULL,
	`amount_micros` integer NOT NULL,
	`status` text NOT NULL,
	`refunds_payment_id` text,
	`created_by_user_id` text,
	`created_at_ms` integer NOT NULL,
	`settled_at_ms` integer,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`refunds_payment_id`) REFERENCES `payments`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`created_by_user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "payments_amount" CHECK("payments"."amount_micros" > 0),
	CONSTRAINT "payments_kind" CHECK("payments"."kind" IN ('top_up', 'refund')),
	CONSTRAINT "payments_status" CHECK("payments"."status" IN ('pending', 'completed', 'canceled'))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `payments_external` ON `payments` (`provider`,`external_id`);--> statement-breakpoint
CREATE INDEX `payments_organization` ON `payments` (`organization_id`,`created_at_ms`);--> statement-breakpoint
CREATE INDEX `payments_refunds` ON `payments` (`refunds_payment_id`) WHERE "payments"."refunds_payment_id" IS NOT NULL;--> statement-breakpoint
CREATE TABLE `program_versions` (
	`version` text PRIMARY KEY NOT NULL,
	`first_ms` integer NOT NULL,
	`last_ms` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `project_months` (
	`project_id` text NOT NULL,
	`month` text NOT NULL,
	`spent_micros` integer DEFAULT 0 NOT NULL,
	`held_micros` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`project_id`, `month`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "project_months_spent" CHECK("project_months"."spent_micros" >= 0),
	CONSTRAINT "project_months_held" CHECK("project_months"."held_micros" >= 0)
) STRICT;
--> statement-breakpoint
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`name` text NOT NULL,
	`spend_limit_micros` integer,
	`archived_at_ms` integer,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "projects_spend_limit" CHECK("projects"."spend_limit_micros" IS NULL OR "projects"."spend_limit_micros" >= 0)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `projects_active_name` ON `projects` (`organization_id`,`name`) WHERE "projects"."archived_at_ms" IS NULL;--> statement-breakpoint
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
CREATE TABLE `tier_changes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`organization_id` text NOT NULL,
	`from_tier` integer NOT NULL,
	`to_tier` integer NOT NULL,
	`reason` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "tier_changes_reason" CHECK("tier_changes"."reason" IN ('top_up', 'refund', 'time', 'operator'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `tier_changes_organization` ON `tier_changes` (`organization_id`,`id`);--> statement-breakpoint
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
CREATE TABLE `usage_records` (
	`request_id` text PRIMARY KEY NOT NULL,
	`time_ms` integer NOT NULL,
	`organization_id` text NOT NULL,
	`project_id` text NOT NULL,
	`api_key_id` text NOT NULL,
	`model` text NOT NULL,
	`mode` text NOT NULL,
	`endpoint` text NOT NULL,
	`status` integer NOT NULL,
	`questions` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cost_micros` integer NOT NULL,
	`latency_ms` real NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`api_key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "usage_mode" CHECK("usage_records"."mode" IN ('fast', 'consistent')),
	CONSTRAINT "usage_failed_is_free" CHECK("usage_records"."status" = 200 OR ("usage_records"."questions" = 0 AND "usage_records"."cost_micros" = 0))
) STRICT;
--> statement-breakpoint
CREATE INDEX `usage_organization_time` ON `usage_records` (`organization_id`,`time_ms`);--> statement-breakpoint
CREATE INDEX `usage_time` ON `usage_records` (`time_ms`);--> statement-breakpoint
CREATE TABLE `users` (
	`id` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`name` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`email_verified` integer DEFAULT false NOT NULL,
	`is_operator` integer DEFAULT false NOT NULL,
	`updated_at_ms` integer DEFAULT 0 NOT NULL,
	`deleted_at_ms` integer
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `users_email_unique` ON `users` (`email`);--> statement-breakpoint
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
CREATE INDEX `verifications_expiry` ON `verifications` (`expires_at_ms`);