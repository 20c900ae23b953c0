/** What the rules of one system say about the names in a checkpoint. */

/** What a format's rules find out. */
export interface Renaming {
  readonly names: ReadonlyMap<string, string>;
  /** The tensor that counts the steps of all parameters together. */
  readonly counter?: string;
  /** Steps by parameter, where they are plain values. */
  readonly steps?: ReadonlyMap<string, number>;
}
