/** `npm run test:full` tries every case. Other runs take one of four of the largest tables. */
export const triesAll = process.env.OPT_TEST_ALL === "1";

/** The cases of a large table that this run tries: all, or one of `every`, beginning with the third where there is one. */
export function sample<Case>(table: readonly Case[], every = 4): readonly Case[] {
  const first = Math.min(2, table.length - 1) % every;
  return triesAll ? table : table.filter((_, i) => i % every === first);
}
