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
CREATE INDEX `idempotent_requests_created` ON `idempotent_requests` (`created_at_ms`);