#include "javascript_values.hpp"

namespace tds {

namespace js {

namespace {

constexpr const char * WRONG_TYPE = "An argument has the wrong type.";

bool get_property(napi_env env, napi_value object, const char * name, napi_value & value) {
    return check(env, napi_get_named_property(env, object, name, &value));
}

bool set_property(napi_env env, napi_value object, const char * name, napi_value value) {
    return check(env, napi_set_named_property(env, object, name, value));
}

}  // namespace

void throw_error(napi_env env, const char * message) { napi_throw_error(env, nullptr, message); }

bool check(napi_env env, napi_status status) {
    if (status == napi_ok) return true;
    bool is_pending = false;
    napi_is_exception_pending(env, &is_pending);
    if (!is_pending) throw_error(env, WRONG_TYPE);
    return false;
}

bool get_string(napi_env env, napi_value value, std::string & text) {
    size_t length = 0;
    if (!check(env, napi_get_value_string_utf8(env, value, nullptr, 0, &length))) return false;
    text.resize(length + 1);
    if (!check(env, napi_get_value_string_utf8(env, value, text.data(), length + 1, &length))) return false;
    text.resize(length);
    return true;
}

bool get_string_property(napi_env env, napi_value object, const char * name, std::string & text) {
    napi_value value;
    return get_property(env, object, name, value) && get_string(env, value, text);
}

bool get_integer_property(napi_env env, napi_value object, const char * name, int32_t & number) {
    napi_value value;
    return get_property(env, object, name, value) && check(env, napi_get_value_int32(env, value, &number));
}

bool get_number_property(napi_env env, napi_value object, const char * name, double & number) {
    napi_value value;
    return get_property(env, object, name, value) && check(env, napi_get_value_double(env, value, &number));
}

bool get_boolean_property(napi_env env, napi_value object, const char * name, bool & flag) {
    napi_value value;
    return get_property(env, object, name, value) && check(env, napi_get_value_bool(env, value, &flag));
}

bool get_numbers(napi_env env, napi_value array, const int32_t *& numbers, size_t & count) {
    napi_typedarray_type type;
    void * data = nullptr;
    if (!check(env, napi_get_typedarray_info(env, array, &type, &count, &data, nullptr, nullptr))) return false;
    if (type != napi_int32_array) {
        throw_error(env, WRONG_TYPE);
        return false;
    }
    numbers = static_cast<const int32_t *>(data);
    return true;
}

bool get_id(napi_env env, napi_value value, uint64_t & id) {
    double number = 0;
    if (!check(env, napi_get_value_double(env, value, &number))) return false;
    if (!(number >= 0)) {
        throw_error(env, WRONG_TYPE);
        return false;
    }
    id = static_cast<uint64_t>(number);
    return true;
}

bool set_number(napi_env env, napi_value object, const char * name, double number) {
    napi_value value;
    return check(env, napi_create_double(env, number, &value)) && set_property(env, object, name, value);
}

bool set_boolean(napi_env env, napi_value object, const char * name, bool flag) {
    napi_value value;
    return check(env, napi_get_boolean(env, flag, &value)) && set_property(env, object, name, value);
}

bool set_string(napi_env env, napi_value object, const char * name, const std::string & text) {
    napi_value value;
    return check(env, napi_create_string_utf8(env, text.data(), text.size(), &value)) &&
           set_property(env, object, name, value);
}

}  // namespace js

}  // namespace tds
