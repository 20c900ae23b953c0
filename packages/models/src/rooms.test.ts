import { roomsTest } from "@opt/testkit/rooms";

roomsTest(new URL(".", import.meta.url), [["adapters", "data"], "plan"]);
