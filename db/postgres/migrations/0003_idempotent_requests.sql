CREATE TABLE "idempotent_requests" (
	"api_key_id" text COLLATE "C" NOT NULL,
	"key_hash" text COLLATE "C" NOT NULL,
	"body_hash" text COLLATE "C" NOT NULL,
	"organization_id" text COLLATE "C" NOT NULL,
	"hold_entry_id" bigint,
	"answer" text COLLATE "C",
	"bytes_so_far" bigint,
	"created_at_ms" bigint NOT NULL,
	CONSTRAINT "idempotent_requests_api_key_id_key_hash_pk" PRIMARY KEY("api_key_id","key_hash"),
	CONSTRAINT "idempotent_requests_runs_or_answered" CHECK (("idempotent_requests"."hold_entry_id" IS NULL) = ("idempotent_requests"."answer" IS NOT NULL)
        AND ("idempotent_requests"."answer" IS NULL) = ("idempotent_requests"."bytes_so_far" IS NULL))
);
--> statement-breakpoint
ALTER TABLE "idempotent_requests" ADD CONSTRAINT "idempotent_requests_api_key_id_api_keys_id_fk" FOREIGN KEY ("api_key_id") REFERENCES "public"."api_keys"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "idempotent_requests" ADD CONSTRAINT "idempotent_requests_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "idempotent_requests" ADD CONSTRAINT "idempotent_requests_hold_entry_id_ledger_entries_id_fk" FOREIGN KEY ("hold_entry_id") REFERENCES "public"."ledger_entries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "idempotent_requests_hold" ON "idempotent_requests" USING btree ("hold_entry_id") WHERE "idempotent_requests"."hold_entry_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "idempotent_requests_organization" ON "idempotent_requests" USING btree ("organization_id","bytes_so_far");--> statement-breakpoint
CREATE INDEX "idempotent_requests_created" ON "idempotent_requests" USING btree ("created_at_ms");