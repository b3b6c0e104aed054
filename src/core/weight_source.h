#pragma once
#include "tern/weights.h"
