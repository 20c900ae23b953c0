import { roomsTest } from "@opt/testkit/rooms";

roomsTest(new URL(".", import.meta.url), [
  ["check.ts", "config", "adapters"],
  "attention",
  "decoder",
  ...["pretrained/place.ts", "tokenizer", "pretrained"],
  "generate",
  ...["data", "plan"],
]);
