CREATE TABLE "answer_counts" (
	"model_id" text COLLATE "C" NOT NULL,
	"day" text COLLATE "C" NOT NULL,
	"question" bigint NOT NULL,
	"class" bigint NOT NULL,
	"answers" bigint NOT NULL,
	CONSTRAINT "answer_counts_model_id_day_question_class_pk" PRIMARY KEY("model_id","day","question","class"),
	CONSTRAINT "answer_counts_answers" CHECK ("answer_counts"."answers" > 0)
);
--> statement-breakpoint
ALTER TABLE "answer_counts" ADD CONSTRAINT "answer_counts_model_id_models_id_fk" FOREIGN KEY ("model_id") REFERENCES "public"."models"("id") ON DELETE no action ON UPDATE no action;