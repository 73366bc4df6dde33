import { asc, eq, getTableColumns, sql } from 'drizzle-orm';
import type { CatalogModel } from '../../src/store/catalog-records.ts';
import { SqlCatalogRecords } from '../records/catalog-records.ts';
import type { Executor } from '../records/executor.ts';
import type { Db } from './connection.ts';
import { modelAliases, models } from './schema.ts';
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

/** The model catalog in SQLite, with prepared statements for the reads of every request. */
export class SqliteCatalogRecords extends SqlCatalogRecords {
  constructor(
    executor: Executor,
    private readonly access: Access,
    private readonly statements: ReturnType<typeof prepareCatalogStatements>,
  ) {
    super(executor);
  }

  override findModel(id: string): Promise<CatalogModel | undefined> {
    return this.access.read(() => this.statements.find.get({ id }));
  }

  override findModelByAlias(alias: string): Promise<CatalogModel | undefined> {
    return this.access.read(() => this.statements.findByAlias.get({ alias }));
  }

  override allModels(): Promise<CatalogModel[]> {
    return this.access.read(() => this.statements.all.all());
  }
}
