import { asc, eq, getTableColumns, sql } from 'drizzle-orm';
import type {
  CatalogModel,
  CatalogRecords,
  ModelAlias,
  ModelTuning,
} from '../../src/catalog/catalog-records.ts';
import type { Db } from './connection.ts';
import { modelAliases, models, modelTunings } from './schema.ts';
import type { Access } from './transactions.ts';

/** Prepares the statements of every request, once for a connection. */
export function prepareCatalogStatements(db: Db) {
  return {
    find: db
      .select()
      .from(models)
      .where(eq(models.id, sql.placeholder('id')))
      .prepare(),
    findByAlias: db
      .select(getTableColumns(models))
      .from(modelAliases)
      .innerJoin(models, eq(models.id, modelAliases.model_id))
      .where(eq(modelAliases.alias, sql.placeholder('alias')))
      .prepare(),
    all: db.select().from(models).orderBy(asc(models.id)).prepare(),
  };
}

/** The model catalog in SQLite. */
export class SqliteCatalogRecords implements CatalogRecords {
  readonly #db: Db;
  readonly #access: Access;
  readonly #statements: ReturnType<typeof prepareCatalogStatements>;

  constructor(db: Db, access: Access, statements: ReturnType<typeof prepareCatalogStatements>) {
    this.#db = db;
    this.#access = access;
    this.#statements = statements;
  }

  findModel(id: string): Promise<CatalogModel | undefined> {
    return this.#access.read(() => this.#statements.find.get({ id }));
  }

  findModelByAlias(alias: string): Promise<CatalogModel | undefined> {
    return this.#access.read(() => this.#statements.findByAlias.get({ alias }));
  }

  allModels(): Promise<CatalogModel[]> {
    return this.#access.read(() => this.#statements.all.all());
  }

  insertModel(model: CatalogModel): Promise<void> {
    return this.#access.write(() => this.#db.insert(models).values(model).run());
  }

  insertModelIfMissing(model: CatalogModel): Promise<boolean> {
    return this.#access.write(() => {
      const inserted = this.#db.insert(models).values(model).onConflictDoNothing();
      return inserted.returning({ id: models.id }).all().length > 0;
    });
  }

  updateModel(id: string, values: Partial<Omit<CatalogModel, 'id'>>): Promise<void> {
    return this.#access.write(() => this.#db.update(models).set(values).where(eq(models.id, id)).run());
  }

  findTuning(model_id: string): Promise<string | undefined> {
    return this.#access.read(
      () => this.#db.select().from(modelTunings).where(eq(modelTunings.model_id, model_id)).get()?.tuning,
    );
  }

  insertTuning(tuning: ModelTuning): Promise<void> {
    return this.#access.write(() => this.#db.insert(modelTunings).values(tuning).run());
  }

  deleteModel(id: string): Promise<void> {
    return this.#access.write(() => {
      this.#db.delete(modelAliases).where(eq(modelAliases.model_id, id)).run();
      this.#db.delete(modelTunings).where(eq(modelTunings.model_id, id)).run();
      this.#db.delete(models).where(eq(models.id, id)).run();
    });
  }

  findAlias(alias: string): Promise<ModelAlias | undefined> {
    return this.#access.read(() =>
      this.#db.select().from(modelAliases).where(eq(modelAliases.alias, alias)).get(),
    );
  }

  allAliases(): Promise<ModelAlias[]> {
    return this.#access.read(() =>
      this.#db.select().from(modelAliases).orderBy(asc(modelAliases.alias)).all(),
    );
  }

  writeAlias(alias: ModelAlias): Promise<void> {
    return this.#access.write(() =>
      this.#db
        .insert(modelAliases)
        .values(alias)
        .onConflictDoUpdate({ target: modelAliases.alias, set: { model_id: alias.model_id } })
        .run(),
    );
  }

  deleteAlias(alias: string): Promise<void> {
    return this.#access.write(() => this.#db.delete(modelAliases).where(eq(modelAliases.alias, alias)).run());
  }
}
