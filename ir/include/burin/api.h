// Marks what libburin.so exports; everything else is hidden.
#pragma once

#ifndef BURIN_API
#define BURIN_API __attribute__((visibility("default")))
#endif
