CREATE TABLE "model_tunings" (
	"model_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"tuning" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
ALTER TABLE "models" ADD COLUMN "base_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "models" ADD COLUMN "tuning_sha256" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "models" ADD COLUMN "organization_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "model_tunings" ADD CONSTRAINT "model_tunings_model_id_models_id_fk" FOREIGN KEY ("model_id") REFERENCES "public"."models"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "models" ADD CONSTRAINT "models_base_id_models_id_fk" FOREIGN KEY ("base_id") REFERENCES "public"."models"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "models" ADD CONSTRAINT "models_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;