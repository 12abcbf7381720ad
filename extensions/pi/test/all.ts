// All unit tests, for one bundle.

import "./mirror.test.ts";
import "./outbox.test.ts";
import "./settings.test.ts";
import "./text.test.ts";
