/** Changes some bits of one word: how the host writes bytes that are no whole words. */
import type { Shader } from "../shader/shader";

export const MERGE_WORD: Shader = {
  name: "merge word",
  slices: { word: "u32" },
  params: { mask: "u32", bits: "u32" },
  lanes: 1,
  body: () => "put_word(0u, (word(0u) & ~params.mask) | params.bits);",
};
