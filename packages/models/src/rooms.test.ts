import { roomsTest } from "@opt/testkit/rooms";

roomsTest(new URL(".", import.meta.url), [
  ["check.ts", "config"],
  "attention",
  "decoder",
  ...["pretrained/place.ts", "tokenizer", "adapters", "pretrained"],
  "generate",
  ...["data", "plan"],
]);
