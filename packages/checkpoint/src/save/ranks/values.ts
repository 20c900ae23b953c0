/** Values of a save on several ranks: one record for all, which rank 0 writes, and a list of what each rank has of its own. */
import { check, OptError, show } from "@opt/core";
import { crc32, crcText } from "../../format/crc32";
import { checkedValues, jsonText } from "../../format/json/plain";
import { isObject, type Json } from "../../format/source";

type Values = { readonly [key: string]: Json };

/** What a rank says of its values: a checksum by key, and all that it has of its own. */
export interface SaidValues {
  readonly sums: { readonly [key: string]: string };
  readonly own?: Values;
}

/** Where `values` of a checkpoint have those of each rank. */
const OWN = "rankValues";

/** What a rank was given to save. */
export interface GivenValues {
  readonly values: Values;
  readonly own: Values | undefined;
}

/** @throws OptError BAD_ARGUMENT for what is no plain JSON, or a taken name */
export function checkedGiven({ values, rankValues }: { values?: unknown; rankValues?: unknown }): GivenValues {
  const given = checkedValues(values ?? {});
  if (rankValues === undefined) return { values: given, own: undefined };
  const problem = () => `values must have no ${OWN} beside those of ranks, got ${show(given[OWN])}.`;
  check(!(OWN in given), "BAD_ARGUMENT", "saveCheckpoint", problem, "Give them another name.");
  return { values: given, own: checkedValues(rankValues, OWN) };
}

export function sayValues({ values, own }: GivenValues): SaidValues {
  const sums = Object.entries(values).map(([key, value]) => [key, sumOf(value)]);
  return { sums: Object.fromEntries(sums), ...(own && { own }) };
}

/**
 * The values of the checkpoint. Ranks may leave out what rank 0 says.
 *
 * @throws OptError BAD_STATE if a rank says something else: it would be lost
 */
export function agreedValues({ values }: GivenValues, said: readonly SaidValues[]): { [key: string]: Json } {
  const [{ sums: first }] = said as [SaidValues];
  for (const key of new Set(said.flatMap(({ sums }) => Object.keys(sums)))) {
    const differing = said.flatMap(({ sums }, rank) =>
      Object.hasOwn(sums, key) && sums[key] !== first[key] ? [rank] : [],
    );
    if (differing.length === 0) continue;
    const others = `rank${differing.length > 1 ? "s" : ""} ${differing.join(", ")}`;
    const problem = `values must be those of rank 0 on each rank, got another ${show(key)} on ${others}.`;
    throw new OptError("BAD_STATE", "saveCheckpoint", problem, `Give what ranks have of their own as ${OWN}.`);
  }
  const isGiven = said.some(({ own }) => own !== undefined);
  return { ...values, ...(isGiven && { [OWN]: said.map(({ own }) => (own ?? null) as Json) }) };
}

/** Of a value, however its members are ordered. */
const sumOf = (value: Json): string => crcText(crc32(new TextEncoder().encode(jsonText(ordered(value)))));

function ordered(value: Json): Json {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, ordered(item)]),
  );
}
