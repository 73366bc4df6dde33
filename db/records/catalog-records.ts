import { and, asc, eq, getTableColumns, gte, lt, sql } from 'drizzle-orm';
import type {
  AnswerCount,
  CatalogModel,
  CatalogRecords,
  ModelAlias,
  ModelTuning,
} from '../../src/store/catalog-records.ts';
import { answerCounts, modelAliases, models, modelTunings } from '../tables.ts';
import type { Executor } from './executor.ts';
import { firstRow } from './first-row.ts';

/** The model catalog. */
export class SqlCatalogRecords implements CatalogRecords {
  constructor(private readonly executor: Executor) {}

  findModel(id: string): Promise<CatalogModel | undefined> {
    return firstRow(this.executor.select().from(models).where(eq(models.id, id)));
  }

  findModelByAlias(alias: string): Promise<CatalogModel | undefined> {
    return firstRow(
      this.executor
        .select(getTableColumns(models))
        .from(modelAliases)
        .innerJoin(models, eq(models.id, modelAliases.model_id))
        .where(eq(modelAliases.alias, alias)),
    );
  }

  async allModels(): Promise<CatalogModel[]> {
    return await this.executor.select().from(models).orderBy(asc(models.id));
  }

  async insertModel(model: CatalogModel): Promise<void> {
    await this.executor.insert(models).values(model);
  }

  async insertModelIfMissing(model: CatalogModel): Promise<boolean> {
    const inserted = this.executor.insert(models).values(model).onConflictDoNothing();
    return (await inserted.returning({ id: models.id })).length > 0;
  }

  async updateModel(id: string, values: Partial<Omit<CatalogModel, 'id'>>): Promise<void> {
    await this.executor.update(models).set(values).where(eq(models.id, id));
  }

  async findTuning(model_id: string): Promise<string | undefined> {
    const found = await firstRow(
      this.executor.select().from(modelTunings).where(eq(modelTunings.model_id, model_id)),
    );
    return found?.tuning;
  }

  async insertTuning(tuning: ModelTuning): Promise<void> {
    await this.executor.insert(modelTunings).values(tuning);
  }

  async addAnswerCounts(model_id: string, day: string, counts: readonly AnswerCount[]): Promise<void> {
    if (counts.length === 0) return;
    await this.executor
      .insert(answerCounts)
      .values(counts.map((count) => ({ model_id, day, ...count })))
      .onConflictDoUpdate({
        target: [answerCounts.model_id, answerCounts.day, answerCounts.question, answerCounts.class],
        set: { answers: sql`${answerCounts.answers} + excluded.answers` },
      });
  }

  async answerCounts(model_id: string, from_day: string): Promise<AnswerCount[]> {
    return await this.executor
      .select({
        question: answerCounts.question,
        class: answerCounts.class,
        answers: sql<number>`sum(${answerCounts.answers})`.mapWith(Number),
      })
      .from(answerCounts)
      .where(and(eq(answerCounts.model_id, model_id), gte(answerCounts.day, from_day)))
      .groupBy(answerCounts.question, answerCounts.class)
      .orderBy(asc(answerCounts.question), asc(answerCounts.class));
  }

  async forgetAnswerCounts(before_day: string): Promise<void> {
    await this.executor.delete(answerCounts).where(lt(answerCounts.day, before_day));
  }

  async deleteModel(id: string): Promise<void> {
    await this.executor.transaction(async (transaction) => {
      await transaction.delete(modelAliases).where(eq(modelAliases.model_id, id));
      await transaction.delete(answerCounts).where(eq(answerCounts.model_id, id));
      await transaction.delete(modelTunings).where(eq(modelTunings.model_id, id));
      await transaction.delete(models).where(eq(models.id, id));
    });
  }

  findAlias(alias: string): Promise<ModelAlias | undefined> {
    return firstRow(this.executor.select().from(modelAliases).where(eq(modelAliases.alias, alias)));
  }

  async allAliases(): Promise<ModelAlias[]> {
    return await this.executor.select().from(modelAliases).orderBy(asc(modelAliases.alias));
  }

  async writeAlias(alias: ModelAlias): Promise<void> {
    await this.executor
      .insert(modelAliases)
      .values(alias)
      .onConflictDoUpdate({ target: modelAliases.alias, set: { model_id: alias.model_id } });
  }

  async deleteAlias(alias: string): Promise<void> {
    await this.executor.delete(modelAliases).where(eq(modelAliases.alias, alias));
  }
}
