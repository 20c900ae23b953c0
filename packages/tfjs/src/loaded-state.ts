/** State that was loaded, until the variables that it is of come to be stepped. */
import { check, keep, noGrad, type ParameterStateDict, Tensor } from "@opt/core";

/** State by the name of its variable. */
export type StateByName = Readonly<Record<string, ParameterStateDict>>;

const LISTED = 4;

const listed = (names: readonly string[]) =>
  `${names.slice(0, LISTED).join(", ") || "none"}${names.length > LISTED ? `, ... (${names.length})` : ""}`;

const areNumbers = (names: readonly string[]) => names.every((name) => /^\d+$/.test(name));

export class LoadedState {
  /** No variable has taken any of it yet. */
  #isFresh = true;

  private constructor(
    private names: readonly string[],
    private entries: StateByName,
  ) {}

  static nothing(): LoadedState {
    return new LoadedState([], {});
  }

  /** A copy. */
  static of(names: readonly string[], state: StateByName): LoadedState {
    const copied = Object.entries(state).map(([name, entry]) => [
      name,
      Object.fromEntries(
        Object.entries(entry).map(([key, value]) => [
          key,
          value instanceof Tensor ? keep(noGrad(() => value.clone())) : value,
        ]),
      ),
    ]);
    return new LoadedState([...names], Object.fromEntries(copied) as StateByName);
  }

  get waiting(): readonly string[] {
    return this.names;
  }

  get state(): StateByName {
    return this.entries;
  }

  /**
   * Which of the names is which of these variables: by name, or by position where no name is known: TF.js numbers variables that have no
   * name, and renames those of a model that is loaded twice.
   *
   * @throws OptError BAD_STATE if it is neither
   */
  matched(where: string, variables: readonly string[]): ReadonlyMap<string, string> {
    const known = new Set(this.names);
    const common = variables.filter((name) => known.has(name));
    const byName = common.length === variables.length || common.length === known.size || !this.#isFresh;
    if (byName) return new Map(common.map((name) => [name, name]));
    const inOrder = common.length === 0 || (areNumbers(variables) && areNumbers(this.names));
    check(
      inOrder && variables.length === this.names.length,
      "BAD_STATE",
      where,
      () => `the loaded state is of ${listed(this.names)}, got ${listed(variables)}.`,
      "Step the variables that it was saved of, of the same names or in the same order.",
    );
    return new Map(variables.map((name, i) => [name, this.names[i]!]));
  }

  /** What `matched` gave now has owners. */
  taken(match: ReadonlyMap<string, string>): void {
    const gone = new Set(match.values());
    disposeState(Object.fromEntries(Object.entries(this.entries).filter(([name]) => gone.has(name))));
    this.names = this.names.filter((name) => !gone.has(name));
    this.entries = Object.fromEntries(Object.entries(this.entries).filter(([name]) => !gone.has(name)));
    if (gone.size > 0) this.#isFresh = false;
  }

  dispose(): void {
    disposeState(this.entries);
    this.names = [];
    this.entries = {};
  }
}

function disposeState(state: StateByName): void {
  for (const value of Object.values(state).flatMap((entry) => Object.values(entry))) {
    if (value instanceof Tensor) value.dispose();
  }
}
