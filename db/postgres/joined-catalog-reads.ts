import type { CatalogModel, CatalogRecords, ModelAlias } from '../../src/store/catalog-records.ts';

interface Snapshot {
  readonly models: CatalogModel[];
  readonly aliases: readonly ModelAlias[];
}

/**
 * Reads the catalog for requests. Concurrent requests share one read of the whole catalog, which is small. So a busy
 * node has one such query under way at a time.
 */
export class JoinedCatalogReads
  implements Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>
{
  #reading: Promise<Snapshot> | undefined;

  constructor(private readonly records: Pick<CatalogRecords, 'allModels' | 'allAliases'>) {}

  async findModel(id: string): Promise<CatalogModel | undefined> {
    return (await this.#read()).models.find((model) => model.id === id);
  }

  async findModelByAlias(alias: string): Promise<CatalogModel | undefined> {
    const { models, aliases } = await this.#read();
    const model_id = aliases.find((one) => one.alias === alias)?.model_id;
    return models.find(({ id }) => id === model_id);
  }

  async allModels(): Promise<CatalogModel[]> {
    return (await this.#read()).models;
  }

  #read(): Promise<Snapshot> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(): Promise<Snapshot> {
    const [models, aliases] = await Promise.all([this.records.allModels(), this.records.allAliases()]);
    return { models, aliases };
  }
}
