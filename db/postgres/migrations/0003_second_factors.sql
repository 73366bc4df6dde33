CREATE TABLE "second_factors" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"secret_encrypted" text COLLATE "C" NOT NULL,
	"recovery_codes_encrypted" text COLLATE "C" NOT NULL,
	"is_confirmed" boolean DEFAULT false NOT NULL,
	"failures" bigint DEFAULT 0 NOT NULL,
	"locked_until_ms" bigint,
	CONSTRAINT "second_factors_user_id_unique" UNIQUE("user_id"),
	CONSTRAINT "second_factors_failures" CHECK ("second_factors"."failures" >= 0)
);
--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "has_second_factor" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "second_factors" ADD CONSTRAINT "second_factors_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;