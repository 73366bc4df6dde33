ALTER TABLE "audited_project_months" ADD COLUMN "api_key_id" text COLLATE "C" DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "project_months" ADD COLUMN "api_key_id" text COLLATE "C" DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "alerts" DROP CONSTRAINT "alerts_kind";--> statement-breakpoint
ALTER TABLE "audited_project_months" DROP CONSTRAINT "audited_project_months_project_id_month_pk";--> statement-breakpoint
ALTER TABLE "project_months" DROP CONSTRAINT "project_months_project_id_month_pk";--> statement-breakpoint
ALTER TABLE "audited_project_months" ADD CONSTRAINT "audited_project_months_project_id_month_api_key_id_pk" PRIMARY KEY("project_id","month","api_key_id");--> statement-breakpoint
ALTER TABLE "project_months" ADD CONSTRAINT "project_months_project_id_month_api_key_id_pk" PRIMARY KEY("project_id","month","api_key_id");--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "first_key_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "monthly_limit_micros" bigint;--> statement-breakpoint
ALTER TABLE "ledger_entries" ADD COLUMN "api_key_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_first_key_id_api_keys_id_fk" FOREIGN KEY ("first_key_id") REFERENCES "public"."api_keys"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "alerts" ADD CONSTRAINT "alerts_kind" CHECK ("alerts"."kind" IN ('credit_low', 'spend_limit_near', 'spend_limit_reached', 'key_spend_limit_near', 'key_spend_limit_reached', 'tier_changed', 'payment_credited', 'key_expires'));